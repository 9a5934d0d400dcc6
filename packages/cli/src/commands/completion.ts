import { existsSync, readdirSync } from 'node:fs';
import tab from '@bomb.sh/tab/commander';
import type { Command } from 'commander';

const SETUP = `
To complete commands, flags and their values with the Tab key:
  bash  echo 'source <(meterline completion bash)' >> ~/.bashrc  (with the package bash-completion)
  zsh   echo 'source <(meterline completion zsh)' >> ~/.zshrc    (after compinit)
  fish  meterline completion fish > ~/.config/fish/completions/meterline.fish
Then open a new shell. "meterline" must be on the PATH.`;

/**
 * Adds the command that completes all that the program has by now, and the hidden one that a shell calls.
 * @param typed what stands where a shell asks what could stand; undefined: none does
 */
export function addCompletion(program: Command, typed: string | undefined): void {
  if (typed !== undefined) {
    for (const command of program.commands.flatMap((each) => [each, ...each.commands]))
      describeForShell(command, typed);
  }
  program.commandsGroup('Your access and your shell:');
  tab(program, { completionCommandName: 'completion' });
  program.commands
    .find((command) => command.name() === 'completion')
    ?.summary('a script that lets a shell complete this command line')
    .description('Prints a script that lets a shell complete this command line. It asks no server.')
    .addHelpText('after', SETUP);
}

const FILE = /<(?:file|path)>/;

/** A shell has one line for a command, and the files of a folder as choices. */
function describeForShell(command: Command, typed: string): void {
  command.description(command.summary() || command.description().replace(/\n[\s\S]*/, ''));
  for (const option of command.options) if (FILE.test(option.flags)) option.choices(filesFor(typed));
  for (const argument of command.registeredArguments) {
    if (FILE.test(`<${argument.name()}>`)) argument.choices(filesFor(typed));
  }
}

function filesFor(typed: string): string[] {
  const folder = typed.slice(0, typed.lastIndexOf('/') + 1);
  if (!existsSync(folder || '.')) return [];
  const found = readdirSync(folder || '.', { withFileTypes: true });
  return found.map((each) => `${folder}${each.name}${each.isDirectory() ? '/' : ''}`);
}
