/** Gives a command the outside world of this process. */
import type { CommandContext, CommandStreams } from './command.js';
import { environment as environmentSchema, Settings } from './settings.js';

export function createContext(
  streams: CommandStreams & Pick<CommandContext, 'stdin'>,
  variables: NodeJS.ProcessEnv = process.env,
): CommandContext {
  const environment = environmentSchema.parse(variables);
  return {
    ...streams,
    environment,
    settings: new Settings(environment, process.cwd()),
    now: () => new Date(),
    interruption: () => {
      const controller = new AbortController();
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort());
      return controller.signal;
    },
  };
}
