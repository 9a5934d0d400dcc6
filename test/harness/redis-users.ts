/** The users of redis/users.conf on a Redis that runs. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type RedisUser, redisUrlOf } from '@meterline/local-stack';
import type { Redis } from 'ioredis';

const USERS = fileURLToPath(new URL('../../redis/users.conf', import.meta.url));

export type { RedisUser };

/** All but `default`, which stays as it is: it is the test's own. */
export async function createUsers(redis: Redis): Promise<void> {
  const users = (await readFile(USERS, 'utf8')).matchAll(/^user (\w+) (.*)$/gm);
  for (const [, name = '', rules = ''] of users) {
    if (name !== 'default') await redis.acl('SETUSER', name, ...rules.split(' '));
  }
}

/** The address of the server for this user, with the password that the file has in its place. */
export function urlOfUser(url: string, user: RedisUser): string {
  return `redis://${user}:${user.toUpperCase()}_PASSWORD@${new URL(url).host}`;
}

/** The environment of a process that has this user on a server of the local stack, as in production, where tests themselves are its admin. */
export function asRedisUser<E extends Readonly<Record<string, string>>>(env: E, user: RedisUser): E {
  const { REDIS_URL: url } = env;
  return url?.startsWith('redis://admin:') ? { ...env, REDIS_URL: redisUrlOf(url, user) } : env;
}
