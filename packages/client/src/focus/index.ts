/** A month as a FOCUS 1.2 data set, for the command line, the web page and other people's programs. */
export { FOCUS_RESOLUTIONS, type FocusResolution } from './charges.js';
export {
  FOCUS_COLUMNS,
  FOCUS_VERSION,
  type FocusCharge,
  type FocusColumn,
  focusCsvHeading,
  focusCsvLines,
} from './columns.js';
export {
  DEFAULT_PROVIDER,
  exportFocus,
  FocusChanged,
  type FocusQuestion,
  type FocusResult,
  type FocusSink,
} from './export.js';
