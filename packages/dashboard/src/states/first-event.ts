/** What sends an account its first event, ready to be pasted. */
import { formatTimestamp, type UsageEventInput } from '@meterline/catalog';

/** Two minutes of a sandbox with one gigabyte. */
export function firstEvent(accountId: string, now: Date): UsageEventInput {
  return {
    eventId: `first-event-${now.getTime()}`,
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
