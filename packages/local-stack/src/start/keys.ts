/** The API keys that a local stack makes once and keeps in its data directory. */
import { isDeepStrictEqual } from 'node:util';
import {
  AccountDirectory,
  ApiKeyStore,
  createRedisClient,
  type KeyRole,
  REDIS_PREFIX,
} from '@meterline/service/access';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from '../data-directory.js';

const LOCAL_ACCOUNT = 'demo';
const CLIENT_ID = 'local-stack';

/** The roles, by the name that the key of each has in `local.json`. */
const KEYS = { adminKey: 'admin', memberKey: 'member', emitterKey: 'emitter' } as const satisfies Record<
  string,
  KeyRole
>;
type KeyName = keyof typeof KEYS;

const keysSchema = z.object({
  account: z.string(),
  adminKey: z.string().optional(),
  memberKey: z.string().optional(),
  emitterKey: z.string().optional(),
});

export type LocalKeys = Readonly<Record<'account' | KeyName, string>>;

/**
 * An account with a key of each role. They are created once and kept in `file`, for a key's text is shown only at its
 * creation; a new one is made of each that this Redis does not know or that was revoked.
 */
export async function ensureKeys(redisUrl: string, file: string, now: Date): Promise<LocalKeys> {
  const redis = createRedisClient(redisUrl, { lazyConnect: true });
  try {
    await redis.connect();
    const store = new ApiKeyStore(redis, new AccountDirectory(redis, REDIS_PREFIX), REDIS_PREFIX);
    const kept = await readPrivateFile(file, keysSchema);
    const ensure = async (name: KeyName) => {
      const key = kept?.[name];
      if (key !== undefined && (await store.authenticate(key, now))) return key;
      return (await store.create({ account: LOCAL_ACCOUNT, role: KEYS[name], clientId: CLIENT_ID }, now)).key;
    };
    const keys = {
      account: LOCAL_ACCOUNT,
      adminKey: await ensure('adminKey'),
      memberKey: await ensure('memberKey'),
      emitterKey: await ensure('emitterKey'),
    };
    if (!isDeepStrictEqual(keys, kept)) await writePrivateFile(file, keys);
    return keys;
  } finally {
    redis.disconnect();
  }
}
