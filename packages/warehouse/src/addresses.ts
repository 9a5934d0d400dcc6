/** Parses ClickHouse addresses. In a file of its own, so that code that only needs addresses does not load the ClickHouse client. */
const EXAMPLE = 'http://127.0.0.1:8123';
const PROTOCOLS: readonly string[] = ['http:', 'https:'];

export function hostsOf(urls: string): string[] {
  return urls.split(',').map((url) => url.trim());
}

/**
 * Validates a comma-separated list of addresses. Returns undefined if all are valid. Otherwise returns an error message without a subject,
 * so that the caller can put the setting's name before it. The message never contains the address, because it may hold a password.
 * Rejects paths, credentials and parameters, because the client would ignore them.
 */
export function clickHouseUrlProblem(text: string): string | undefined {
  return hostsOf(text)
    .map(urlProblem)
    .find((problem) => problem !== undefined);
}

function urlProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return `must be a URL such as ${EXAMPLE}`;
  const { protocol, username, password, pathname, search, hash } = new URL(text);
  if (!PROTOCOLS.includes(protocol)) return `must be a URL such as ${EXAMPLE}`;
  const more = [username, password, pathname === '/' ? '' : pathname, search, hash].some((part) => part !== '');
  if (!more) return undefined;
  return (
    `must be a URL such as ${EXAMPLE} and nothing more: set user, password and database with ` +
    'CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE'
  );
}
