import { startError } from './start-error.js';

/** The variables that name a proxy, in the order in which undici looks at them. */
const PROXY_VARIABLES = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'];
/** A proxy is another machine: it cannot reach the local stack. */
const LOOPBACK = 'localhost,127.0.0.1,[::1]';

/**
 * Sends what `fetch` requests through the proxy of `HTTP_PROXY` and `HTTPS_PROXY`, if one is set. `NO_PROXY` and loopback addresses are
 * reached directly. Node's own fetch ignores the variables before version 24.
 * @throws StartError
 */
export async function useOutboundProxy(variables: NodeJS.ProcessEnv): Promise<void> {
  if (!PROXY_VARIABLES.some((name) => variables[name])) return;
  const { EnvHttpProxyAgent, setGlobalDispatcher } = await import('undici');
  const unproxied = variables['no_proxy'] ?? variables['NO_PROXY'] ?? '';
  const noProxy = unproxied.trim() === '*' ? '*' : `${unproxied},${LOOPBACK}`;
  try {
    setGlobalDispatcher(new EnvHttpProxyAgent({ noProxy, proxyTunnel: false }));
  } catch (error) {
    throw startError('HTTP_PROXY and HTTPS_PROXY must be addresses such as http://proxy.example.com:3128', error);
  }
}
