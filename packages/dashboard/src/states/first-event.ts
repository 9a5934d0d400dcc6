/** The command that sends an account its first event, ready to be pasted. */
import { formatTimestamp, QUEUE_NAME, type UsageEventInput } from '@meterline/catalog';

const RANDOM_BYTES = 16;

/** Two minutes of a sandbox with one gigabyte. */
export function firstEvent(accountId: string, now: Date, random: Uint8Array): UsageEventInput {
  return {
    eventId: uuidV4(random),
    accountId,
    workspace: 'production',
    resourceType: 'sandbox',
    resourceName: 'my-sandbox',
    billingDimension: 'sandbox_compute_runtime_gbs',
    usage: '120',
    timestamp: formatTimestamp(now.getTime() - (now.getTime() % 1_000)),
  };
}

/** A here-document with a quoted end, so that the shell changes nothing in it. */
export function sendCommand(event: UsageEventInput): string {
  return `npx meterline emit - <<'EVENT'\n${JSON.stringify(event)}\nEVENT`;
}

/** The same as a program. */
export function producerCode(event: UsageEventInput): string {
  return `import { Queue } from 'bullmq';

const queue = new Queue('${QUEUE_NAME}', { connection: { url: process.env.REDIS_URL } });
await queue.add('usage', ${JSON.stringify(event, null, 2)});
await queue.close();`;
}

/** Browsers have crypto.randomUUID only over https. @param random 16 bytes */
function uuidV4(random: Uint8Array): string {
  const bytes = Uint8Array.from(random.subarray(0, RANDOM_BYTES));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
