/** The command that sends an account its first event, ready to be pasted. */
import { type EpochMs, formatTimestamp, QUEUE_NAME, type UsageEventInput } from '@meterline/catalog';

/** Two minutes of a sandbox with one gigabyte. @param random 10 bytes */
export function firstEvent(accountId: string, now: Date, random: Uint8Array): UsageEventInput {
  return {
    eventId: uuidV7(now.getTime(), random),
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
  return `npx --no meterline emit - <<'EVENT'\n${JSON.stringify(event)}\nEVENT`;
}

/** The same as a program. */
export function producerCode(event: UsageEventInput): string {
  return `import { Queue } from 'bullmq';

const queue = new Queue('${QUEUE_NAME}', { connection: { url: process.env.REDIS_URL } });
await queue.add('usage', ${JSON.stringify(event, null, 2)});
await queue.close();`;
}

/** 48 bits of milliseconds, then the version, the variant and random bits. Source: RFC 9562, section 5.7. */
function uuidV7(now: EpochMs, random: Uint8Array): string {
  const time = now.toString(16).padStart(12, '0');
  const bytes = Uint8Array.from(random.subarray(0, 10));
  bytes[0] = ((bytes[0] ?? 0) & 0x0f) | 0x70;
  bytes[2] = ((bytes[2] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return [time.slice(0, 8), time.slice(8), hex.slice(0, 4), hex.slice(4, 8), hex.slice(8)].join('-');
}
