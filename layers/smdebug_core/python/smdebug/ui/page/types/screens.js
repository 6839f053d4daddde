// What the frame of the page and its screens expect of each other.

/**
 * @typedef {object} Frame
 * @property {HTMLElement} main where the screen is drawn
 * @property {HTMLElement} crumbs where it says where one is
 * @property {(error: Error | null) => void} report show a problem, or none
 * @property {() => {name: string, what: string, values: URLSearchParams}} address
 * @property {(values: Record<string, any>) => void} remember keep what is chosen in the address
 * @property {string} list the address of the list, with its search and its filters
 */

/**
 * @typedef {object} Screen
 * @property {() => Promise<void>} refresh
 * @property {(key: string) => boolean} key act on a key; return whether it did
 * @property {() => void} redraw draw again, in other colours or another size
 * @property {() => void} close
 */

export {};
