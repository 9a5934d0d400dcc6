import { findFreePort, isPortFree, requireFreePort } from '../ports.js';

const USUAL_PORT = 8080;
const EVERY_ADDRESS = '0.0.0.0';

/**
 * The port of the API: the one asked for, or else the usual one, or else any that is free.
 *
 * @throws LocalStackError `port_in_use` if the one asked for is
 */
export async function chooseApiPort(wanted: number | undefined, say: (line: string) => void): Promise<number> {
  if (wanted !== undefined) {
    await requireFreePort(wanted, 'PORT');
    return wanted;
  }
  if ((await isPortFree(USUAL_PORT)) && (await isPortFree(USUAL_PORT, EVERY_ADDRESS))) return USUAL_PORT;
  const port = await findFreePort();
  say(`Port ${USUAL_PORT} is in use; the API listens on ${port}.`);
  return port;
}
