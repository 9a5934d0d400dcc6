export interface RedisBinaryOptions {
  /** Whose PATH to search and what to run a package manager with. Default: this process's environment. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Told, one line each, what takes long or changes the machine. Default: silence. */
  say?: ((line: string) => void) | undefined;
}

/** Redis cannot be had here; the message says, in one line, what to do. */
export class RedisUnavailableError extends Error {}

/**
 * The absolute path of a `redis-server` of a version that Meterline can use: the one on PATH, or else one installed
 * now with the system's package manager, if that is possible without asking anyone.
 *
 * @throws RedisUnavailableError
 */
export function ensureRedisServer(options?: RedisBinaryOptions): Promise<string>;
