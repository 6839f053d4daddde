// What the page uses of uPlot, without its types: they are longer than what calls them.
declare class uPlot {
  [name: string]: any;
  constructor(options: object, data: any[], place: HTMLElement);
}
export default uPlot;
