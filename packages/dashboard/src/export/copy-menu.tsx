import { useState } from 'react';
import { CopyButton, Popover, Segments } from '../controls/controls.js';
import { cliCommand, curlCommand, type SharedQuery, typeScriptCode } from './copy-as.js';

const FORMS: Readonly<Record<string, (shared: SharedQuery) => string>> = {
  curl: curlCommand,
  'Command line': cliCommand,
  TypeScript: typeScriptCode,
};

/** The query of the table for use elsewhere. The text is shown too: without https a page has no clipboard. */
export function CopyMenu(shared: Omit<SharedQuery, 'origin'>) {
  return <Popover label="Copy as">{() => <CopyPanel shared={{ ...shared, origin: location.origin }} />}</Popover>;
}

function CopyPanel({ shared }: { readonly shared: SharedQuery }) {
  const [chosen, setChosen] = useState('curl');
  const text = FORMS[chosen]?.(shared) ?? '';
  return (
    <div className="copy">
      <Segments legend="Form" choices={Object.keys(FORMS)} chosen={chosen} onChoose={setChosen} />
      <pre>
        <code>{text}</code>
      </pre>
      <div className="choices-end">
        <span className="hint">Set METERLINE_API_KEY to a key. The key is not part of the text.</span>
        <CopyButton key={text} text={text} className="primary" />
      </div>
    </div>
  );
}
