/** Stores alerts and their deliveries, writes messages, and decides to which URLs webhooks may be sent. */
export {
  type Alert,
  type AlertSettings,
  type Fired,
  isSigned,
  periodAt,
  settingsOf,
  validSecrets,
  webhookPayload,
} from './alert.js';
export * from './alerts.js';
export * from './deliveries.js';
export { mailBody, messageBody } from './messages.js';
export * from './webhook-target.js';
