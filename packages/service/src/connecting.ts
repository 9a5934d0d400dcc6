/** How long a program waits for a connection before it tries the next address of the host. */
import { getDefaultAutoSelectFamilyAttemptTimeout, setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';

/** Enough for a slow network, and for a first packet that is lost: the system sends it again after a second. */
const ATTEMPT_MS = 2_500;

/**
 * Node gives each address but the last 250 ms (RFC 8305), and then drops the attempt: a host that is farther away is never reached if its
 * name has another address that does not work. For the whole process, so only programs call this, when they start.
 */
export function allowSlowConnections(): void {
  setDefaultAutoSelectFamilyAttemptTimeout(Math.max(getDefaultAutoSelectFamilyAttemptTimeout(), ATTEMPT_MS));
}
