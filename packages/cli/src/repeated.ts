/** Rejects repeated flags, except those that collect several values. */
import { type Command, Option } from 'commander';

/** A flag that may be repeated. {@link rejectRepeated} rejects the repetition of any other flag with a value. */
export class RepeatableOption extends Option {}

/** Makes repeated flags with a value a usage error, also in subcommands. Otherwise commander would silently use the last value. */
export function rejectRepeated(command: Command): void {
  for (const option of command.options) {
    if (option.isBoolean() || option instanceof RepeatableOption) continue;
    let isGiven = false;
    command.on(`option:${option.name()}`, () => {
      if (isGiven) command.error(`error: option '${option.flags}' takes one value; use it once`);
      isGiven = true;
    });
  }
  command.commands.forEach(rejectRepeated);
}
