/**
 * Replays the Azure LLM inference trace 2023 (Azure Public Dataset, CC-BY 4.0) as usage events, through the emitter. Each request in the
 * trace becomes one async request and the compute time it took. Event IDs derive from file name and line, so replaying a file again adds
 * nothing.
 *
 *   COLLECTOR_URL=… METERLINE_EMITTER_KEY=… node examples/replay-trace.mjs FILE… [--account NAME] [--shift-hours N]
 *
 * FILE is azure-llm-2023-code.csv or azure-llm-2023-conv.csv. The folder trace-slice has the first 500 requests of each.
 */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';
import { openEmitter } from '@meterline/emitter';
import { v5 as uuidV5 } from 'uuid';

const REQUEST = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\.(\d{7}),(\d{1,9}),(\d{1,9})$/;
const MS_PER_HOUR = 3_600_000;

const { positionals: files, values } = parseArgs({
  allowPositionals: true,
  options: {
    account: { type: 'string', default: 'azure-llm-2023' },
    'shift-hours': { type: 'string', default: '0' },
  },
});

const meter = await openEmitter({
  url: process.env.COLLECTOR_URL ?? '',
  apiKey: process.env.METERLINE_EMITTER_KEY ?? '',
});
for (const file of files) {
  for (const event of eventsOf(basename(file), await readFile(file, 'utf8'))) meter.record(event);
  await meter.flush({ timeoutMs: Number.POSITIVE_INFINITY });
}
const isSent = await meter.close({ timeoutMs: Number.POSITIVE_INFINITY });
const { dropped, recorded, sent, rejected } = meter.counters;
console.log(`${recorded} events from ${files.length} files: ${sent} accepted, ${rejected} rejected`);
process.exitCode = isSent && rejected + dropped === 0 ? 0 : 1;

/** Returns two events for each request. */
function* eventsOf(name, text) {
  const [, workspace] = /^azure-llm-2023-(code|conv)\.csv$/.exec(name) ?? [];
  if (!workspace)
    throw new Error(`${name}: the file must have its original name, because event IDs derive from the name`);
  const lines = text.trimEnd().split(/\r?\n/).slice(1);
  for (const [index, line] of lines.entries()) {
    const [, date, time, fraction, context, generated] = REQUEST.exec(line) ?? [];
    if (!generated) throw new Error(`${name}:${index + 2}: not a request: ${line}`);
    const event = (billingDimension, usage) => ({
      eventId: uuidV5(`${name}:${index + 1}:${billingDimension}`, uuidV5.URL),
      accountId: values.account,
      workspace,
      resourceType: 'agent',
      resourceName: workspace,
      billingDimension,
      usage,
      timestamp: `${shifted(`${date}T${time}Z`)}.${fraction}Z`,
    });
    yield event('agent_async_requests_count', 1);
    yield event('agent_compute_runtime_gbs', gbSeconds(BigInt(context), BigInt(generated)));
  }
}

/** Shifts by whole hours and omits the fraction of the second, which the caller appends unchanged. */
function shifted(timestamp) {
  return new Date(Date.parse(timestamp) + Number(values['shift-hours']) * MS_PER_HOUR).toISOString().slice(0, 19);
}

/** Returns 80 GB × (context tokens × 0.0002 s + generated tokens × 0.03 s) exactly, by calculating in units of 0.0001 GB-s. */
function gbSeconds(context, generated) {
  const units = 80n * (context * 2n + generated * 300n);
  return `${units / 10_000n}.${String(units % 10_000n).padStart(4, '0')}`;
}
