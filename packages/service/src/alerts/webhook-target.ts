/** Decides where alerts may be sent: to public https addresses, to hosts in ALERT_ALLOWED_HOSTS, and by e-mail if a sender is configured. */
import ipaddr from 'ipaddr.js';
import { z } from 'zod';

/** Each entry is `host` or `host:port`, with IPv6 addresses in brackets. */
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
    'Private hosts (`host` or `host:port`, comma-separated) that webhooks may be sent to, also without TLS. Set the same for the query and the alerts service.',
  );

/** The sender is a separate variable, so that the query service does not need the password of the mail server. */
export const mailSenderVariable = z
  .string()
  .regex(
    /^([^<>"@\r\n]+ <)?[^\s<>"@,;]+@[^\s<>"@,;]+>?$/,
    'must be an address such as billing@example.com or Example Billing <billing@example.com>',
  )
  .optional()
  .describe(
    'Sender of alerts by e-mail, such as `billing@example.com` or `Example Billing <billing@example.com>`. Set the same for the query and the alerts service, together with `ALERT_SMTP_URL`. Not set: the API rejects alerts by e-mail.',
  );

/** Returns the host as the URL parser writes it: names in lowercase, and addresses in their usual form. */
function canonicalHost(text: string): string | undefined {
  if (!/^[^/?#@\s]+$/.test(text) || !URL.canParse(`https://${text}`)) return undefined;
  const { host, hostname } = new URL(`https://${text}`);
  // The parser drops port 443. Without the port, the entry would allow all ports of the host.
  return text.endsWith(':443') ? `${hostname}:443` : host;
}

export function isAllowedHost({ hostname, port, protocol }: URL, allowed: AllowedHosts): boolean {
  const number = port || (protocol === 'http:' ? '80' : '443');
  return allowed.has(hostname) || allowed.has(`${hostname}:${number}`);
}

/**
 * Returns why webhooks may not be sent to the URL, or undefined if they may. Messages show the result after "url". Names are not resolved here,
 * because their addresses are checked when a webhook is sent. The URL parser has already normalized addresses, for example from octal numbers.
 */
export function targetProblem(text: string, allowed: AllowedHosts): string | undefined {
  const url = new URL(text);
  if (isAllowedHost(url, allowed)) return undefined;
  if (url.protocol !== 'https:')
    return 'must begin with https://, so that nobody can read or change the webhook on its way';
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const isLocal = host === 'localhost' || host.endsWith('.localhost');
  if (!isLocal && (!ipaddr.isValid(host) || isPublicAddress(host))) return undefined;
  return 'must not be an address of this machine or of a private network, unless an operator lists it in ALERT_ALLOWED_HOSTS';
}

/** The prefix of IPv4 addresses behind NAT64. Source: RFC 6052, section 2.1. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/** Unlike the library, rejects IPv4-compatible addresses such as `::127.0.0.1` as not public (RFC 4291, section 2.5.5.1). */
export function isPublicAddress(text: string): boolean {
  const address = ipaddr.parse(text);
  if (address instanceof ipaddr.IPv4) return address.range() === 'unicast';
  if (address.match(NAT64)) {
    return new ipaddr.IPv4(address.toByteArray().slice(-4)).range() === 'unicast';
  }
  return address.range() === 'unicast' && !address.match(ipaddr.IPv6.parse('::'), 96);
}
