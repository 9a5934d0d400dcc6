export interface RedisBinaryOptions {
  /** Provides PATH, and is passed to a package manager. Default: this process's environment. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Called with one line before a step that takes long or changes the machine. Default: no output. */
  say?: ((line: string) => void) | undefined;
}

/** No Redis was found or could be installed; the message says in one line what to do. */
export class RedisUnavailableError extends Error {}

/**
 * The absolute path of a `redis-server` of a version that Meterline can use: the one on PATH, or else one installed
 * now with the system's package manager, if that is possible without asking anyone.
 *
 * @throws RedisUnavailableError
 */
export function ensureRedisServer(options?: RedisBinaryOptions): Promise<string>;
