/** What sends an account its first event, ready to be pasted. */
import { type EpochMs, formatTimestamp, type UsageEventInput } from '@meterline/catalog';

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

/** Makes the key that the others need in KEY. */
export function keyCommand(account: string): string {
  return `npx --no meterline keys create --account '${account.replaceAll("'", "'\\''")}' --role emitter`;
}

/**
 * A here-document with a quoted end, so that the shell changes nothing in it.
 * @param collectorUrl undefined: it is not known, and is to be in COLLECTOR
 */
export function sendCommand(event: UsageEventInput, collectorUrl = '$COLLECTOR'): string {
  const url = `${collectorUrl}/v0/accounts/${pathPart(event.accountId)}/events`;
  return `curl -sS "${url}" \\
  -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' --data-binary @- <<'EVENT'
${JSON.stringify(event)}
EVENT`;
}

/** The same as a program; the emitter gives each event its id and its time. */
export function producerCode({ eventId: _, timestamp: __, ...event }: UsageEventInput, collectorUrl?: string): string {
  const url = collectorUrl === undefined ? 'process.env.COLLECTOR' : `'${collectorUrl}'`;
  return `import { openEmitter } from '@meterline/emitter';

const meter = await openEmitter({ url: ${url}, apiKey: process.env.KEY });
meter.record(${JSON.stringify(event, null, 2)});
await meter.close();`;
}

/** Without the characters that a shell gives a meaning in double quotes or at its prompt. */
function pathPart(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
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
