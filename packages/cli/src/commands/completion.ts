import type { CommandContext, CommandModule } from '../command.js';
import { Argument, type Command } from '../commander.js';
import { type CommandNode, commandTree } from '../completion/command-tree.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

const SETUP = `
To complete commands, flags and their values with the Tab key:
  bash  echo 'source <(meterline completion bash)' >> ~/.bashrc
  zsh   echo 'source <(meterline completion zsh)' >> ~/.zshrc    (after compinit)
  fish  meterline completion fish > ~/.config/fish/completions/meterline.fish
Then open a new shell. "meterline" must be on the PATH.`;

type AddCommands = (program: Command, context: CommandContext) => Promise<void>;

/** The command that completes all others. @param addEveryCommand adds them, and this one */
export function completionOf(addEveryCommand: AddCommands): CommandModule {
  return {
    addCommand(program, context) {
      program
        .command('completion')
        .description(
          'Prints a script that lets a shell complete this command line. It asks no server, and runs nothing of Meterline.',
        )
        .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
        .addHelpText('after', SETUP)
        .action(async (shell: Shell) => {
          // The program that was called has the flags of this command alone.
          const whole = program.createCommand(program.name());
          await addEveryCommand(whole, context);
          context.stdout.write((await SCRIPTS[shell]())(commandTree(whole)));
        });
    },
  };
}

const SCRIPTS: Readonly<Record<Shell, () => Promise<(program: CommandNode) => string>>> = {
  bash: async () => (await import('../completion/bash.js')).bashScript,
  zsh: async () => (await import('../completion/zsh.js')).zshScript,
  fish: async () => (await import('../completion/fish.js')).fishScript,
};
