import type { Command } from 'commander';
import { type CommandContext, say } from '../command.js';
import { removeConfigFile } from '../settings/saved-files.js';

export function addCommand(program: Command, context: CommandContext): void {
  program
    .command('logout')
    .description(
      'Removes the key that "meterline login" keeps. The key itself stays valid: only an admin revokes it, with ' +
        '"meterline keys revoke" or the API.',
    )
    .action(() => logout(context));
}

async function logout(context: CommandContext): Promise<void> {
  const wasThere = await removeConfigFile(context.configFile);
  say(context, wasThere ? `Logged out: ${context.configFile} is removed.` : 'Nobody was logged in.');
}
