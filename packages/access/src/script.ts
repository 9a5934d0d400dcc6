/** Lua scripts, which Redis remembers by their hash until it restarts. */
import { createHash } from 'node:crypto';
import type { RedisClient } from './redis.js';

/** A script, and the hash by which Redis remembers it. */
export interface Script {
  readonly text: string;
  readonly hash: string;
}

export function scriptOf(text: string): Script {
  return { text, hash: createHash('sha1').update(text).digest('hex') };
}

/**
 * Runs a script by its hash, and by its text where the server does not know it.
 * @param whenUnknown called then, with what is to be sent instead
 */
export async function runScript(
  redis: RedisClient,
  script: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
  whenUnknown: () => Script = () => script,
): Promise<unknown> {
  try {
    return await redis.evalsha(script.hash, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
    return redis.eval(whenUnknown().text, keys.length, ...keys, ...args);
  }
}
