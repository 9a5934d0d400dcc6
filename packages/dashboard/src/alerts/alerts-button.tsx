/** Opens the account's alerts, and says how many have fired. */
import { useState } from 'react';
import { AlertsPanel, type AlertsPanelProps } from './alerts-panel.js';

export function AlertsButton(props: Omit<AlertsPanelProps, 'onClose'>) {
  const { alerts, isAdmin } = props;
  const [isOpen, setOpen] = useState(false);
  if (alerts.length === 0 && !isAdmin) return null;
  const fired = alerts.filter((alert) => alert.fired.length > 0).length;
  return (
    <>
      <button
        type="button"
        className={fired > 0 ? 'control active' : 'control'}
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
      >
        {alerts.length === 0 ? 'Set an alert' : 'Alerts'}
        {fired > 0 && <span className="control-value">{fired} fired</span>}
      </button>
      {isOpen && <AlertsPanel {...props} onClose={() => setOpen(false)} />}
    </>
  );
}
