/** The users of redis/users.conf on a Redis that runs. */
import { type RedisUser, redisUrlOf } from '@meterline/local-stack';

export type { RedisUser };

/** The address of the server for this user, with the password that the file has in its place. */
export function urlOfUser(url: string, user: RedisUser): string {
  return `redis://${user}:${user.toUpperCase()}_PASSWORD@${new URL(url).host}`;
}

/** The environment of a process that has this user on a server of the local stack, as in production, where tests themselves are its admin. */
export function asRedisUser<E extends Readonly<Record<string, string>>>(env: E, user: RedisUser): E {
  const { REDIS_URL: url } = env;
  return url?.startsWith('redis://admin:') ? { ...env, REDIS_URL: redisUrlOf(url, user) } : env;
}
