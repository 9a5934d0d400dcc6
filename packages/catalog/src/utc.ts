/**
 * UTC as an option of date-fns: what its companion calls `utc`, with dates that cannot be formatted. The companion's own makes three
 * formats of Intl when it is loaded, which take Node longer than the rest of the catalog.
 */
import { UTCDateMini } from '@date-fns/utc/date/mini';

export const UTC = { in: (value: Date | number | string) => new UTCDateMini(+new Date(value)) };
