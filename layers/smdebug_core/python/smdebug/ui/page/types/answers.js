// The forms of the server's answers. Made of answer_types.py: `make answer-types`.

/**
 * A statistic of every tensor of a kind, row by row; each column is a stretch of steps with its extremes.
 * @typedef {object} Matrix
 * @property {number} rows
 * @property {number} columns
 * @property {boolean} exact
 * @property {number[]} first
 * @property {number[]} last
 * @property {Float32Array} low
 * @property {Float32Array} high
 */

/**
 * What the table of a deployed debugger has about a run.
 * @typedef {object} DeployedAnswer
 * @property {string} state
 * @property {string | null} verdict
 * @property {number | null} evaluated_through
 * @property {number} open_issues
 * @property {Record<string, number>} rules
 * @property {string | null} job
 * @property {string} trouble
 */

/**
 * The status of a rule that a deployed debugger evaluates.
 * @typedef {object} StatusAnswer
 * @property {string} name
 * @property {string} rule
 * @property {string} status
 * @property {string} reason
 * @property {number | null} issue_since
 * @property {number | null} last_found
 * @property {number | null} last_good
 * @property {number | null} evaluated_through
 * @property {boolean} catching_up
 * @property {boolean} attached
 * @property {Record<string, string>} parameters
 */

/**
 * The same, with the status of each rule.
 * @typedef {object} DeployedRunAnswer
 * @property {string} state
 * @property {string | null} verdict
 * @property {number | null} evaluated_through
 * @property {number} open_issues
 * @property {Record<string, number>} rules
 * @property {string | null} job
 * @property {string} trouble
 * @property {StatusAnswer[]} statuses
 */

/**
 * One run in the list.
 * @typedef {object} RowAnswer
 * @property {string} id
 * @property {string} name
 * @property {string} path
 * @property {string} state
 * @property {string} error
 * @property {string} note
 * @property {number} steps
 * @property {number | null} last_step
 * @property {number | null} training_step
 * @property {number | null} first_saved
 * @property {number | null} last_saved
 * @property {number | null} duration
 * @property {number} workers
 * @property {string} loss_name
 * @property {number | null} loss
 * @property {(number | null)[]} curve
 * @property {number | null} issues
 * @property {string} issue
 * @property {number | null} since
 * @property {number} checked
 * @property {number | null} passed
 * @property {string} missing
 * @property {string} check
 * @property {Record<string, any>} configuration
 * @property {Record<string, number | null>} metrics
 * @property {number | null} cost
 * @property {string} cost_title
 * @property {DeployedAnswer | null} deployed
 */

/**
 * The list of runs. While `looking`, a place was not listed yet.
 * @typedef {object} Runs
 * @property {number} version
 * @property {boolean} looking
 * @property {string[]} places
 * @property {RowAnswer[]} runs
 * @property {string[]} errors
 */

/**
 * A problem: its parts in words, and in `parts` with labels.
 * @typedef {object} IssueAnswer
 * @property {string[]} rules
 * @property {number} since
 * @property {string} headline
 * @property {string} sentence
 * @property {string[]} where
 * @property {any[][]} parts
 */

/**
 * What a rule found at a step: the worst finding, and how many there are.
 * @typedef {object} FoundAnswer
 * @property {number} step
 * @property {string} text
 * @property {number} count
 * @property {string[]} tensors
 */

/**
 * The result of a rule so far: `waiting`, `passed`, `found`, `failed`, `not checked`.
 * @typedef {object} RuleAnswer
 * @property {string} name
 * @property {string} rule
 * @property {string} state
 * @property {string} sentence
 * @property {string} detects
 * @property {number | null} seconds
 * @property {Record<string, any>} parameters
 * @property {number[]} steps_found
 * @property {FoundAnswer[]} found
 */

/**
 * A finding.
 * @typedef {object} LogLine
 * @property {number} step
 * @property {string | null} mode
 * @property {string} rule
 * @property {string} message
 * @property {string} tensor
 */

/**
 * What the rules reported.
 * @typedef {object} LogAnswer
 * @property {number} total
 * @property {LogLine[]} lines
 */

/**
 * What the rules found, and their log.
 * @typedef {object} VerdictAnswer
 * @property {RuleAnswer[]} rules
 * @property {LogAnswer} log
 */

/**
 * A scalar, how many values it has, and the modes in which it has them.
 * @typedef {object} SeriesName
 * @property {string} name
 * @property {number} count
 * @property {string[]} modes
 * @property {boolean} is_tensor
 */

/**
 * A kind of tensors; `joined` saved steps share a column of the heat map.
 * @typedef {object} KindAnswer
 * @property {string} name
 * @property {number} tensors
 * @property {number} joined
 */

/**
 * A tensor that a finding names, or that was saved whole on request.
 * @typedef {object} NamedTensor
 * @property {string} kind
 * @property {string} name
 */

/**
 * One run: its progress, its diagnosis, and what it holds. While `listing`, there are more steps.
 * @typedef {object} RunAnswer
 * @property {string} id
 * @property {string} name
 * @property {string} path
 * @property {number} version
 * @property {string} state
 * @property {string} error
 * @property {string[]} notes
 * @property {number} steps
 * @property {boolean} listing
 * @property {number} steps_read
 * @property {number} steps_checked
 * @property {number | null} first_step
 * @property {number | null} last_step
 * @property {number | null} first_saved
 * @property {number | null} last_saved
 * @property {number | null} duration
 * @property {string[]} workers
 * @property {IssueAnswer[]} issues
 * @property {RuleAnswer[]} rules
 * @property {SeriesName[]} series
 * @property {any[]} training_steps
 * @property {any[]} epochs
 * @property {string} no_epochs
 * @property {any[]} times
 * @property {KindAnswer[]} kinds
 * @property {string[]} statistics
 * @property {string} missing
 * @property {any[][]} modes
 * @property {string[][]} damaged
 * @property {Record<string, any>} configuration
 * @property {number | null} cost
 * @property {string} cost_title
 * @property {NamedTensor[]} named
 * @property {DeployedRunAnswer | null} deployed
 */

/**
 * The best value of a scalar, with its training step and its epoch, from 1 on.
 * @typedef {object} BestAnswer
 * @property {number} value
 * @property {boolean} is_highest
 * @property {number} step
 * @property {number | null} epoch
 */

/**
 * A scalar over a window of steps: each part with its extremes.
 * @typedef {object} SeriesAnswer
 * @property {string} name
 * @property {number[]} first
 * @property {number[]} last
 * @property {(number | null)[]} low
 * @property {(number | null)[]} high
 * @property {number[]} not_finite
 * @property {boolean} exact
 * @property {number} total
 * @property {number[] | null} training_steps
 * @property {BestAnswer | null} best
 * @property {any[]} epoch_means
 */

/**
 * The rows of a kind's heat map. If they are `folded`, a row has all tensors of a module.
 * @typedef {object} RowsAnswer
 * @property {string[]} names
 * @property {number} tensors
 * @property {boolean} folded
 */

/**
 * A page of the tensors that share a row.
 * @typedef {object} MembersAnswer
 * @property {string[]} names
 * @property {number} total
 */

/**
 * Every statistic of a tensor: each column is a stretch of steps with its extremes.
 * @typedef {object} HistoryAnswer
 * @property {string} name
 * @property {string} kind
 * @property {number[]} first
 * @property {number[]} last
 * @property {boolean} exact
 * @property {Record<string, (number | null)[]>} low
 * @property {Record<string, (number | null)[]>} high
 */

/**
 * A histogram of sampled values.
 * @typedef {object} SampleAnswer
 * @property {number} count
 * @property {number[]} counts
 * @property {(number | null)[]} edges
 */

/**
 * The first rows and columns of a tensor that was saved whole.
 * @typedef {object} ValuesAnswer
 * @property {number[]} shape
 * @property {string} dtype
 * @property {((number | null)[])[]} rows
 */

/**
 * What a step has of a tensor.
 * @typedef {object} AtStepAnswer
 * @property {number} step
 * @property {string} name
 * @property {Record<string, Record<string, number | null>>} workers
 * @property {SampleAnswer | null} sample
 * @property {ValuesAnswer | null} values
 */

/**
 * Every statistic of a kind's tensors where each was measured last, with the extremes of joined steps.
 * @typedef {object} NumbersAnswer
 * @property {string[]} names
 * @property {string[]} shapes
 * @property {(number | null)[]} first
 * @property {(number | null)[]} last
 * @property {Record<string, (number | null)[]>} low
 * @property {Record<string, (number | null)[]>} high
 */

/**
 * The content of an input at the step of a finding: pictures as data URIs, or rows of text.
 * @typedef {object} InputAnswer
 * @property {string} name
 * @property {number} step
 * @property {number[]} shape
 * @property {string[]} rules
 * @property {string[]} pictures
 * @property {string[]} texts
 */

/**
 * How much the workers' mean magnitude of a tensor differs, relative to their mean.
 * @typedef {object} SpreadAnswer
 * @property {string} name
 * @property {number[]} steps
 * @property {(number | null)[]} spread
 */

/**
 * The seconds that a stage took from saving to publishing.
 * @typedef {object} LatencyAnswer
 * @property {string} stage
 * @property {number} median
 * @property {number} p99
 */

/**
 * What reading a whole run tells: its size and origin, inputs in findings, how workers differ, costs.
 * @typedef {object} AboutAnswer
 * @property {string[][]} facts
 * @property {string[][]} origin
 * @property {number | null} waiting
 * @property {InputAnswer[]} inputs
 * @property {string[]} unsaved_inputs
 * @property {SpreadAnswer[]} spread
 * @property {string} cost
 * @property {string} cost_basis
 * @property {LatencyAnswer[]} latency
 */

/**
 * A value that was logged to be looked at.
 * @typedef {object} LoggedValueAnswer
 * @property {string} worker
 * @property {number} number
 * @property {string} name
 * @property {string} kind
 * @property {number} step
 * @property {string} mode
 * @property {number} bytes
 * @property {string} caption
 * @property {string} note
 * @property {number[]} shape
 */

/**
 * What was logged to be looked at, in the order of steps; a report has `omitted` some.
 * @typedef {object} LoggedAnswer
 * @property {LoggedValueAnswer[]} values
 * @property {Record<string, number>} left_out
 * @property {number} omitted
 * @property {string} problem
 */

/**
 * A logged text, table, confusion matrix or histogram: what its kind has.
 * @typedef {object} LoggedContentAnswer
 * @property {string} [text]
 * @property {string[]} [columns]
 * @property {any[][]} [rows]
 * @property {string[]} [classes]
 * @property {any[]} [counts]
 * @property {number[]} [edges]
 * @property {number} [not_finite]
 */

/**
 * Changes of what was true of the steps: step, name, value.
 * @typedef {object} FactsAnswer
 * @property {any[][]} changes
 */

/**
 * The state of each worker at each step: 0 as most workers, 1 different, 2 absent.
 * @typedef {object} RanksAnswer
 * @property {string[]} workers
 * @property {number[]} steps
 * @property {number[][]} state
 */

/**
 * The first step and tensor whose statistics differ.
 * @typedef {object} DivergenceAnswer
 * @property {number} step
 * @property {string} kind
 * @property {string} tensor
 * @property {(number | null)[]} rms
 */

/**
 * One of the compared runs.
 * @typedef {object} ComparedRun
 * @property {string} id
 * @property {string} name
 * @property {boolean} ready
 * @property {string} error
 * @property {number} steps
 * @property {IssueAnswer[]} issues
 * @property {number} checked
 * @property {number} passed
 * @property {string} missing
 * @property {SeriesName[]} series
 * @property {any[]} training_steps
 * @property {any[]} epochs
 * @property {string} no_epochs
 * @property {any[]} times
 * @property {Record<string, any>} configuration
 * @property {DivergenceAnswer | null} divergence
 */

/**
 * A parameter, with its value in each run.
 * @typedef {object} DifferenceAnswer
 * @property {string} name
 * @property {any[]} values
 */

/**
 * How the values of a collection differ between two runs; `largest` is the largest |a − b|.
 * @typedef {object} ComparedCollection
 * @property {string} name
 * @property {number} tensors
 * @property {number} tensors_different
 * @property {number} compared
 * @property {number} different
 * @property {number | null} first_step
 * @property {number | null} largest
 */

/**
 * Two runs compared value by value, which only a report does.
 * @typedef {object} ComparedValues
 * @property {string} outcome
 * @property {DifferenceAnswer[]} configuration
 * @property {ComparedCollection[]} collections
 */

/**
 * Several runs, compared with the first of them.
 * @typedef {object} ComparisonAnswer
 * @property {ComparedRun[]} runs
 * @property {DifferenceAnswer[]} configuration
 * @property {string[]} series
 * @property {ComparedValues | null} values
 */

/**
 * A rule that checks a run.
 * @typedef {object} RuleOfRun
 * @property {string} name
 * @property {string} rule
 * @property {Record<string, any>} parameters
 */

/**
 * A built-in rule, with what it detects.
 * @typedef {object} KnownRule
 * @property {string} name
 * @property {string} sentence
 */

/**
 * The rules of a run, and those that can be attached or evaluated.
 * @typedef {object} RulesAnswer
 * @property {RuleOfRun[]} attached
 * @property {KnownRule[]} built_in
 * @property {string[]} in_file
 */

/**
 * The rules of a run after a change.
 * @typedef {object} AttachedAnswer
 * @property {RuleOfRun[]} attached
 */

/**
 * The known tensors that a request to zoom in selects.
 * @typedef {object} ZoomAnswer
 * @property {string[]} matching
 * @property {number} count
 */

/**
 * The content of the control file.
 * @typedef {object} StopRequest
 * @property {string} reason
 * @property {string | null} finding_id
 * @property {number | null} stop_at_step
 * @property {string} [run_id]
 * @property {number} [training_run]
 */

/**
 * A stop that was requested.
 * @typedef {object} StopAnswer
 * @property {StopRequest} requested
 */

/**
 * The result of a rule that was evaluated.
 * @typedef {object} EvaluatedAnswer
 * @property {RuleAnswer} rule
 * @property {LogAnswer} log
 */

/**
 * Patterns of tensors to save whole.
 * @typedef {object} ZoomBody
 * @property {string[]} tensors
 * @property {number} [steps]
 * @property {string} [reason]
 */

/**
 * Why the training is to stop.
 * @typedef {object} StopBody
 * @property {string} [reason]
 */

/**
 * What changes of a run's tags, note and pin, and the version that was read.
 * @typedef {object} AnnotateBody
 * @property {string} version
 * @property {string[]} [tags]
 * @property {string} [note]
 * @property {boolean} [pinned]
 * @property {string} [group]
 */

/**
 * What people have written about a run.
 * @typedef {object} AnnotationsAnswer
 * @property {string[]} tags
 * @property {string} note
 * @property {boolean} pinned
 * @property {string} version
 * @property {string | null} group
 */

/**
 * Names of built-in rules, or entries of rules.json.
 * @typedef {object} AttachBody
 * @property {any[]} rules
 */

/**
 * Names of the rules to remove.
 * @typedef {object} DetachBody
 * @property {string[]} rules
 */

/**
 * A rule and its parameters.
 * @typedef {object} EvaluateBody
 * @property {string} rule
 * @property {Record<string, any>} [parameters]
 */

export {};
