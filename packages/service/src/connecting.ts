/** Gives each address of a host more time to connect before the next address is tried. */
import { getDefaultAutoSelectFamilyAttemptTimeout, setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';

/** Enough for a slow network, and for one lost packet, which the operating system resends after a second. */
const ATTEMPT_MS = 2_500;

/**
 * Increases Node's timeout of 250 ms per address (RFC 8305). With 250 ms, a distant host is never reached if one of its other addresses
 * does not work. The setting applies to the whole process, so only programs call this function, at start.
 */
export function allowSlowConnections(): void {
  setDefaultAutoSelectFamilyAttemptTimeout(Math.max(getDefaultAutoSelectFamilyAttemptTimeout(), ATTEMPT_MS));
}
