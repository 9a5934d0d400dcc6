/** The users of the local Redis: those of redis/users.conf, each with a password of its own. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hashTagged } from '@meterline/catalog';
import { ensurePassword } from './secrets.js';

const FILE = fileURLToPath(new URL('../../../../redis/users.conf', import.meta.url));

export const REDIS_USERS = ['producer', 'collector', 'worker', 'query', 'operator'] as const;
export type RedisUser = (typeof REDIS_USERS)[number];
export type RedisPasswords = Readonly<Record<RedisUser, string>>;

/** The same at every start in a data directory. */
export async function ensureRedisPasswords(directory: string): Promise<RedisPasswords> {
  const of = (user: RedisUser) => ensurePassword(join(directory, `redis-${user}-password.json`));
  return {
    producer: await of('producer'),
    collector: await of('collector'),
    worker: await of('worker'),
    query: await of('query'),
    operator: await of('operator'),
  };
}

/** Lines of redis.conf. All users but `default`, which stays the owner's: it may do everything. */
export async function redisUsers(passwords: RedisPasswords, queuePrefix: string): Promise<string> {
  let lines = (await readFile(FILE, 'utf8')).match(/^user (?!default ).*$/gm)?.join('\n') ?? '';
  for (const user of REDIS_USERS) lines = lines.replace(`${user.toUpperCase()}_PASSWORD`, passwords[user]);
  // The first, and those of QUEUE_SHARDS: the number stands before the brace that ends the tag.
  const tagged = hashTagged(queuePrefix);
  const end = tagged.indexOf('}', tagged.indexOf('{') + 2);
  const shards = `${patternOf(tagged.slice(0, end))}*${patternOf(tagged.slice(end))}`;
  return `${lines.replaceAll('{bull*}:', `${shards}:`).replaceAll('bull:', `${patternOf(queuePrefix)}:`)}\n`;
}

/** What a pattern gives a meaning, and blanks, which end one, stand for any byte. */
function patternOf(prefix: string): string {
  return prefix.replace(/[^\w.:-]/gu, (character) => '?'.repeat(Buffer.byteLength(character)));
}
