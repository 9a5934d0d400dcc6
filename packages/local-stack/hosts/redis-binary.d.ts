export interface RedisBinaryOptions {
  /** Where to look, in the form of PATH. Default: this process's PATH. */
  path?: string | undefined;
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
