/** The page's entry. */
import { createRoot } from 'react-dom/client';
import { App } from './shell/app.js';
import { applyTheme } from './shell/theme.js';
import './styles/base.css';
import './styles/shell.css';
import './styles/controls.css';
import './styles/panel.css';
import './styles/chart.css';
import './styles/table.css';

applyTheme();

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no #root');
createRoot(root).render(<App />);
