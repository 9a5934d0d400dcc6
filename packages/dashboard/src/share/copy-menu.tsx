import { useState } from 'react';
import { Popover } from '../controls/popover.js';
import { cliCommand, curlCommand, type SharedQuestion, typeScriptCode } from './copy-as.js';

const FORMS = [
  { label: 'curl', write: curlCommand },
  { label: 'Command line', write: cliCommand },
  { label: 'TypeScript', write: typeScriptCode },
] as const;

/** The question of the table for use elsewhere. The text is shown too: without https a page has no clipboard. */
export function CopyMenu(question: Omit<SharedQuestion, 'origin'>) {
  return <Popover label="Copy as">{() => <CopyPanel question={{ ...question, origin: location.origin }} />}</Popover>;
}

function CopyPanel({ question }: { readonly question: SharedQuestion }) {
  const [chosen, setChosen] = useState(0);
  const [copied, setCopied] = useState(false);
  const text = FORMS[chosen]?.write(question) ?? '';
  return (
    <div className="copy">
      <fieldset className="segments">
        <legend className="sr-only">Form</legend>
        {FORMS.map(({ label }, position) => (
          <button
            key={label}
            type="button"
            data-autofocus={position === 0 || undefined}
            aria-pressed={position === chosen}
            onClick={() => {
              setChosen(position);
              setCopied(false);
            }}
          >
            {label}
          </button>
        ))}
      </fieldset>
      <pre>
        <code>{text}</code>
      </pre>
      <div className="copy-end">
        <span className="hint">Set METERLINE_API_KEY to a key. The key is not part of the text.</span>
        <button
          type="button"
          className="primary"
          onClick={() => void navigator.clipboard?.writeText(text).then(() => setCopied(true))}
        >
          {copied ? 'Copied' : 'Copy'}
        </button>
      </div>
    </div>
  );
}
