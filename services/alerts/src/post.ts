/**
 * Posts a webhook. Names are resolved here, and a connection is made to a public address alone, also if the name has another one by now;
 * no redirect is followed. Decision 0013 has the libraries.
 */
import { promises as dns } from 'node:dns';
import { type RequestOptions, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import { type AllowedHosts, isAllowedHost, targetFault } from '@meterline/service/alerts';
import { RequestFilteringHttpsAgent } from 'request-filtering-agent';

export interface PostOptions extends Pick<RequestOptions, 'lookup'> {
  readonly allowedHosts: AllowedHosts;
  /** From the first packet to the last. */
  readonly timeoutMs?: number;
}

export interface Outcome {
  readonly isDelivered: boolean;
  /** The HTTP status, or why there is none. It names no address: who reads it may not know what a name stands for here. */
  readonly text: string;
}

const TIMEOUT_MS = 10_000;
/** What a receiver answers is of no interest; beyond so much of it the connection is dropped. */
const MAX_ANSWER_BYTES = 64 * 1024;
const LONGEST_REASON = 100;

const publicAgent = new RequestFilteringHttpsAgent();

/** Never rejects. A status of 2xx is a delivery. */
export function post(
  target: string,
  body: string,
  headers: Readonly<Record<string, string>>,
  { allowedHosts, timeoutMs = TIMEOUT_MS, lookup }: PostOptions,
): Promise<Outcome> {
  const fault = targetFault(target, allowedHosts);
  if (fault !== undefined) return Promise.resolve({ isDelivered: false, text: `url ${fault}` });
  const url = new URL(target);
  const { agent, ...names } = isAllowedHost(url, allowedHosts)
    ? { agent: false, lookup }
    : { agent: publicAgent, lookup: lookup ?? lookupPublic };
  const options = { method: 'POST', headers, agent, ...names, signal: AbortSignal.timeout(timeoutMs) };
  return new Promise((resolve) => {
    let status: number | undefined;
    let reason: NodeJS.ErrnoException | undefined;
    const request = (url.protocol === 'http:' ? requestHttp : requestHttps)(url, options, (response) => {
      status = response.statusCode ?? 0;
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_ANSWER_BYTES) request.destroy();
      });
      response.on('error', () => undefined);
    });
    request.on('error', (error) => {
      reason ??= error;
    });
    request.on('close', () => {
      const isDelivered = status !== undefined && status >= 200 && status < 300;
      resolve({ isDelivered, text: status === undefined ? reasonOf(reason, timeoutMs) : String(status) });
    });
    request.end(body);
  });
}

/**
 * Asks the name servers itself. The system's own lookup waits in two threads of the process for all names, so that one customer's name
 * server that does not answer would hold up the webhooks of everybody.
 */
const lookupPublic: LookupFunction = async (hostname, { all }, callback) => {
  const [ipv4, ipv6] = await Promise.allSettled([dns.resolve4(hostname), dns.resolve6(hostname)]);
  const addresses = [
    ...(ipv4.status === 'fulfilled' ? ipv4.value.map((address) => ({ address, family: 4 })) : []),
    ...(ipv6.status === 'fulfilled' ? ipv6.value.map((address) => ({ address, family: 6 })) : []),
  ];
  const [first] = addresses;
  if (!first) callback(ipv4.status === 'rejected' ? ipv4.reason : new Error('the name has no address'), '');
  else if (all) callback(null, addresses);
  else callback(null, first.address, first.family);
};

function reasonOf(error: NodeJS.ErrnoException | undefined, timeoutMs: number): string {
  if (!error) return 'the connection was closed without an answer';
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return `no answer within ${timeoutMs / 1000} s`;
  if (/is not allowed/.test(error.message)) return 'the host has an address that is not public';
  return error.code ?? error.message.slice(0, LONGEST_REASON);
}
