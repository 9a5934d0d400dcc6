/** The secrets that a local stack makes once and keeps in its data directory. */
import { randomBytes } from 'node:crypto';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from '../private-file.js';

const LOCAL_ACCOUNT = 'demo';
const CLIENT_ID = 'local-stack';

const secretSchema = z.object({ cursorSecret: z.string().min(32) });
const keysSchema = z.object({ account: z.string(), adminKey: z.string(), memberKey: z.string() });

export type LocalKeys = z.output<typeof keysSchema>;

/** The same at every start, so that a cursor outlives a restart as it does in production. */
export async function ensureCursorSecret(file: string): Promise<string> {
  const kept = await readPrivateFile(file, secretSchema);
  if (kept) return kept.cursorSecret;
  const cursorSecret = randomBytes(32).toString('hex');
  await writePrivateFile(file, { cursorSecret });
  return cursorSecret;
}

/**
 * An account with a key of each role. They are created once and kept in `file`, for a key's text is shown only at its
 * creation; new ones are made if this Redis does not know them or they were revoked.
 */
export async function ensureKeys(redisUrl: string, file: string, now: Date): Promise<LocalKeys> {
  const redis = new Redis(redisUrl, { lazyConnect: true });
  try {
    await redis.connect();
    const store = new ApiKeyStore(redis, new AccountDirectory(redis, REDIS_PREFIX), REDIS_PREFIX);
    const kept = await readPrivateFile(file, keysSchema);
    if (kept && (await store.authenticate(kept.adminKey, now)) && (await store.authenticate(kept.memberKey, now)))
      return kept;

    const create = (role: 'admin' | 'member') =>
      store.create({ account: LOCAL_ACCOUNT, role, clientId: CLIENT_ID }, now).then(({ key }) => key);
    const keys = { account: LOCAL_ACCOUNT, adminKey: await create('admin'), memberKey: await create('member') };
    await writePrivateFile(file, keys);
    return keys;
  } finally {
    redis.disconnect();
  }
}
