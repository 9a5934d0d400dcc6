/** Bold and dim text, on a terminal that wants it. */
import type { CommandContext } from '../command-context.js';

export interface Style {
  strong(text: string): string;
  quiet(text: string): string;
}

const PLAIN: Style = { strong: (text) => text, quiet: (text) => text };

const COLOURED: Style = {
  strong: (text) => `\u001b[1m${text}\u001b[22m`,
  quiet: (text) => `\u001b[2m${text}\u001b[22m`,
};

/** Plain into a pipe or a file, on a dumb terminal, and where NO_COLOR is set (no-color.org). */
export function styleFor({ stdout, environment }: Pick<CommandContext, 'stdout' | 'environment'>): Style {
  const { NO_COLOR, TERM } = environment;
  return stdout.isTTY && NO_COLOR === undefined && TERM !== 'dumb' ? COLOURED : PLAIN;
}
