/** What commands touch of the outside world, as this process has it. */
import type { Tracing } from '@meterline/service/tracing';
import type { CommandContext, CommandStreams } from './command.js';
import { usageError } from './failure.js';
import { environment as environmentSchema, Settings } from './settings.js';

export interface OpenedContext {
  readonly context: CommandContext;
  /** Sends what is left to send. */
  close(): Promise<void>;
}

export function createContext(
  streams: CommandStreams & Pick<CommandContext, 'stdin'>,
  variables: NodeJS.ProcessEnv = process.env,
): OpenedContext {
  const environment = environmentSchema.parse(variables);
  let tracing: Promise<Tracing> | undefined;
  const openTracing = () => {
    tracing ??= startTracing(variables, (line) => streams.stderr.write(`meterline: ${line}\n`));
    return tracing;
  };
  const context: CommandContext = {
    ...streams,
    environment,
    tracing: openTracing,
    settings: new Settings(environment, process.cwd()),
    now: () => new Date(),
    interruption: () => {
      const controller = new AbortController();
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort());
      return controller.signal;
    },
  };
  // Tracing that could not be opened has failed the command already.
  const close = async () => (await tracing?.catch(() => undefined))?.close();
  return { context, close };
}

/** @throws CommandError when the environment asks for a kind of tracing that there is not */
async function startTracing(variables: NodeJS.ProcessEnv, say: (line: string) => void): Promise<Tracing> {
  const service = await import('@meterline/service/tracing');
  try {
    const settings = service.readTracingSettings(variables, 'meterline-cli');
    return await service.startTracing(settings, (reason) => say(`spans could not be sent: ${reason}`));
  } catch (error) {
    if (error instanceof service.EnvError) throw usageError(error.message);
    throw error;
  }
}
