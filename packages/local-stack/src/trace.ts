/**
 * Real traffic as usage events: the Azure LLM inference trace 2023 (Azure Public Dataset, CC-BY 4.0; "Splitwise:
 * Efficient Generative LLM Inference Using Phase Splitting", ISCA 2024). One request gives two events at its timestamp.
 * Pure, and free of the embedded engine, so that the command line can use it too.
 */
import { createHash } from 'node:crypto';
import { formatScaled, MS_PER_HOUR, parseTimestamp, type UsageEventInput } from '@meterline/catalog';

const TRACE_ACCOUNT = 'azure-llm-2023';

const FILE_NAME = /^azure-llm-2023-(code|conv)\.csv$/;
const HEADER = 'TIMESTAMP,ContextTokens,GeneratedTokens';
const REQUEST = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\.(\d{7}),(\d{1,9}),(\d{1,9})$/;

/** usage = 80 GB × (ContextTokens × 0.0002 s + GeneratedTokens × 0.03 s), here in units of 0.0001 GB-s. */
const MEMORY_GB = 80n;
const CONTEXT_TOKEN = 2n;
const GENERATED_TOKEN = 300n;
const USAGE_SCALE = 4;

/** One request as the file has it. */
export interface TraceRequest {
  /** From 1, the header not counted. */
  readonly dataLine: number;
  /** UTC, to the second: `2023-11-16T18:17:03Z`. */
  readonly second: string;
  /** The seven digits behind the second. */
  readonly fraction: string;
  readonly contextTokens: bigint;
  readonly generatedTokens: bigint;
}

export interface TraceFile {
  /** The base name; the ids of the events derive from it. */
  readonly name: string;
  /** Workspace and resource name of every event: `code` or `conv`. */
  readonly workspace: string;
  readonly requests: readonly TraceRequest[];
}

export interface TraceOptions {
  /** Default: the trace's own account. */
  readonly accountId?: string | undefined;
  /** Moves every timestamp by whole hours; the ids stay. */
  readonly shiftHours?: number | undefined;
}

/** The file is not such a trace; the message says which line is wrong, and why. */
export class TraceFormatError extends Error {
  override readonly name = 'TraceFormatError';

  constructor(
    /** From 1, as an editor counts; undefined when the fault is the file's name. */
    readonly line: number | undefined,
    message: string,
  ) {
    super(message);
  }
}

/**
 * Reads a whole trace. Lines end in CRLF or LF; the last one may have no line end.
 * @param name the file's base name
 * @throws TraceFormatError at the first line that is not a request
 */
export function parseTrace(name: string, text: string): TraceFile {
  const workspace = FILE_NAME.exec(name)?.[1];
  if (workspace === undefined) {
    throw new TraceFormatError(
      undefined,
      'a trace is named azure-llm-2023-code.csv or azure-llm-2023-conv.csv, because the ids of its events derive from that name',
    );
  }
  const [header, ...lines] = text.split(/\r?\n/);
  if (header !== HEADER) throw new TraceFormatError(1, `the first line must be ${HEADER}`);
  if (lines.at(-1) === '') lines.pop();
  return { name, workspace, requests: lines.map((line, index) => parseRequest(line, index + 1)) };
}

/** The two events of a request: one async request, and the compute it took. */
export function eventsOfRequest(
  { name, workspace }: TraceFile,
  request: TraceRequest,
  { accountId = TRACE_ACCOUNT, shiftHours = 0 }: TraceOptions = {},
): UsageEventInput[] {
  const timestamp = shiftedTimestamp(request, shiftHours);
  const event = (billingDimension: UsageEventInput['billingDimension'], usage: number | string): UsageEventInput => ({
    eventId: uuidV5(URL_NAMESPACE, `${name}:${request.dataLine}:${billingDimension}`),
    accountId,
    workspace,
    resourceType: 'agent',
    resourceName: workspace,
    billingDimension,
    usage,
    timestamp,
  });
  return [event('agent_async_requests_count', 1), event('agent_compute_runtime_gbs', computeUsage(request))];
}

/** The line number of a request in the file; the header is line 1. */
export function lineOfRequest({ dataLine }: TraceRequest): number {
  return dataLine + 1;
}

function parseRequest(line: string, dataLine: number): TraceRequest {
  const [, date, time, fraction, contextTokens, generatedTokens] = REQUEST.exec(line) ?? [];
  const second = `${date}T${time}Z`;
  if (
    fraction === undefined ||
    contextTokens === undefined ||
    generatedTokens === undefined ||
    parseTimestamp(second) === undefined
  ) {
    throw new TraceFormatError(
      dataLine + 1,
      `expected a request such as 2023-11-16 18:17:03.9799600,4808,10 but found ${JSON.stringify(line.slice(0, 80))}`,
    );
  }
  return { dataLine, second, fraction, contextTokens: BigInt(contextTokens), generatedTokens: BigInt(generatedTokens) };
}

/** In GB-seconds, exact. */
function computeUsage({ contextTokens, generatedTokens }: TraceRequest): string {
  return formatScaled(MEMORY_GB * (contextTokens * CONTEXT_TOKEN + generatedTokens * GENERATED_TOKEN), USAGE_SCALE);
}

/** RFC 3339 with the file's seven fraction digits. Whole hours leave them, and the order of the requests, alone. */
function shiftedTimestamp({ second, fraction }: TraceRequest, hours: number): string {
  const shifted = new Date(Date.parse(second) + hours * MS_PER_HOUR).toISOString();
  return `${shifted.slice(0, -'.000Z'.length)}.${fraction}Z`;
}

/** Namespace of names that are URLs. Source: RFC 9562 §6.6. */
export const URL_NAMESPACE = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';

const VERSION_5 = 0x50;
const VARIANT_RFC_9562 = 0x80;

/**
 * The UUID of a name within a namespace, the same every time: SHA-1 of both, with version and variant set.
 * Source: RFC 9562 §5.5. Ten lines over node:crypto need no dependency.
 */
export function uuidV5(namespace: string, name: string): string {
  const digest = createHash('sha1')
    .update(Buffer.from(namespace.replaceAll('-', ''), 'hex'))
    .update(name, 'utf8')
    .digest();
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | VERSION_5, 6);
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | VARIANT_RFC_9562, 8);
  const hex = digest.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
}
