/** @param ports of the servers, on this machine */
export function startBalancer(ports: readonly number[]): Promise<{ readonly url: string; stop(): void }>;
