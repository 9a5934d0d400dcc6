/** How long a program waits for a connection before it tries the next address of the host. */
import { getDefaultAutoSelectFamilyAttemptTimeout, setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';

/** Enough for a slow network, and for a first packet that is lost: the system sends it again after a second. */
const ATTEMPT_MS = 2_500;

/**
 * Node gives up on every address except the last after 250 ms (RFC 8305): a host that is farther away is never reached if its
 * name has another address that does not work. For the whole process, so only programs call this, when they start.
 */
export function allowSlowConnections(): void {
  setDefaultAutoSelectFamilyAttemptTimeout(Math.max(getDefaultAutoSelectFamilyAttemptTimeout(), ATTEMPT_MS));
}
