import type { Attack } from './attack.js';
import { cursorsAttack } from './cursors-attack.js';
import { doorAttack } from './door-attack.js';
import { edgesAttack } from './edges-attack.js';
import { engineAttack } from './engine-attack.js';
import { eventsAttack } from './events-attack.js';
import { fullLogAttack } from './full-log-attack.js';
import { fullRedisAttack } from './full-redis-attack.js';
import { hugeJobsAttack } from './huge-jobs-attack.js';
import { jobsAttack } from './jobs-attack.js';
import { neighbourAttack } from './neighbour-attack.js';
import { oldEventsAttack } from './old-events-attack.js';
import { bytesAttack, requestsAttack } from './requests-attack.js';
import { grantsAttack, producerAttack } from './rights-attack.js';
import { stopAttack } from './stop-attack.js';
import { tokensAttack } from './tokens-attack.js';
import { unreadAttack } from './unread-attack.js';

/** Those with random input, judged by models. `npm test` has a short form of each. */
export const FUZZES: readonly Attack[] = [requestsAttack, bytesAttack, jobsAttack, eventsAttack];

export const ATTACKS: readonly Attack[] = [
  ...FUZZES,
  neighbourAttack,
  unreadAttack,
  fullLogAttack,
  engineAttack,
  hugeJobsAttack,
  stopAttack,
  cursorsAttack,
  fullRedisAttack,
  tokensAttack,
  oldEventsAttack,
  edgesAttack,
  doorAttack,
  producerAttack,
  grantsAttack,
];
