/** Where webhooks may go: public addresses over https, and hosts that the operator lists in ALERT_ALLOWED_HOSTS. */
import ipaddr from 'ipaddr.js';
import { z } from 'zod';

/** Hosts, each as `host` or `host:port`; an IPv6 address stands in brackets. */
export type AllowedHosts = ReadonlySet<string>;

const HOST_RULE = 'must list hosts such as hooks.internal, 10.0.0.7:8443 or [::1], separated by commas';

export const allowedHostsVariable = z
  .string()
  .transform((text, context): AllowedHosts => {
    const hosts = text.split(',').flatMap((host) => host.trim() || []);
    const canonical = hosts.map(canonicalHost);
    if (canonical.includes(undefined)) context.addIssue({ code: 'custom', message: HOST_RULE });
    return new Set(canonical.filter((host) => host !== undefined));
  })
  .default(new Set<string>())
  .describe(
    'Hosts (`host` or `host:port`, with commas between them) that webhooks may go to although they are private, and without TLS; for the query service and the alerts service.',
  );

/** As URLs have it: in lower case, and without the port that is usual for https. */
function canonicalHost(text: string): string | undefined {
  if (!/^[^/?#@\s]+$/.test(text) || !URL.canParse(`https://${text}`)) return undefined;
  return new URL(`https://${text}`).host;
}

/** Whether the operator lists the host, on all of its ports or on this one. */
export function isAllowedHost({ hostname, port, protocol }: URL, allowed: AllowedHosts): boolean {
  const usual = protocol === 'http:' ? '80' : '443';
  // A listed port 443 is the usual one, which a URL leaves out.
  const withPort = [`${hostname}:${port || usual}`, ...((port || usual) === '443' ? [hostname] : [])];
  return allowed.has(hostname) || withPort.some((host) => allowed.has(host));
}

/**
 * What keeps a webhook from being posted there, as text to append to "url"; undefined for nothing. What a name stands for is checked when it
 * is resolved. URLs have addresses in one form only: decimal, octal and hexadecimal ones are the same here.
 */
export function targetProblem(text: string, allowed: AllowedHosts): string | undefined {
  const url = new URL(text);
  if (isAllowedHost(url, allowed)) return undefined;
  if (url.protocol !== 'https:') return 'must begin with https://, so that nobody can read or change what is sent';
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const isLocal = host === 'localhost' || host.endsWith('.localhost');
  if (!isLocal && (!ipaddr.isValid(host) || isPublicAddress(host))) return undefined;
  return 'must not be an address of this machine or of a private network; an operator may list it in ALERT_ALLOWED_HOSTS';
}

/** IPv4 addresses behind NAT64. Source: RFC 6052, section 2.1. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/** The library takes IPv4 addresses in the old form `::127.0.0.1` (RFC 4291, 2.5.5.1) for usual ones. */
export function isPublicAddress(text: string): boolean {
  const address = ipaddr.parse(text);
  if (address instanceof ipaddr.IPv4) return address.range() === 'unicast';
  if (address.match(NAT64)) {
    return new ipaddr.IPv4(address.toByteArray().slice(-4)).range() === 'unicast';
  }
  return address.range() === 'unicast' && !address.match(ipaddr.IPv6.parse('::'), 96);
}
