/** The users of redis/users.conf on a Redis that runs. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';

const USERS = fileURLToPath(new URL('../redis/users.conf', import.meta.url));

export type RedisUser = 'producer' | 'collector' | 'worker' | 'query' | 'operator';

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
