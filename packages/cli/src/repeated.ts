/** Which flags may be given several times. */
import { type Command, Option } from 'commander';

/** A flag that may be given several times. Any other with a value is given once: see {@link rejectRepeated}. */
export class RepeatableOption extends Option {}

/** Makes a second value of a flag that takes one a usage error, in the command and those below it: commander would keep the last. */
export function rejectRepeated(command: Command): void {
  for (const option of command.options) {
    if (option.isBoolean() || option instanceof RepeatableOption) continue;
    let isGiven = false;
    command.on(`option:${option.name()}`, () => {
      if (isGiven) command.error(`error: option '${option.flags}' takes one value; give it once`);
      isGiven = true;
    });
  }
  command.commands.forEach(rejectRepeated);
}
