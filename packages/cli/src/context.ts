/** Creates the context of a command from this process. */
import type { CommandContext, CommandStreams } from './command.js';
import { environment } from './setting-sources.js';
import { Settings } from './settings.js';

export function createContext(
  streams: CommandStreams & Pick<CommandContext, 'stdin'>,
  variables: NodeJS.ProcessEnv = process.env,
): CommandContext {
  return {
    ...streams,
    settings: new Settings(environment.parse(variables), process.cwd()),
    now: () => new Date(),
    interruption: () => {
      const controller = new AbortController();
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort());
      return controller.signal;
    },
  };
}
