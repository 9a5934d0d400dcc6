/** The page's entry. */
import './without-eval.js';
import { createRoot } from 'react-dom/client';
import { App } from './app.js';
import { applyTheme } from './theme/theme.js';
import './styles/index.css';

applyTheme();

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no #root');
createRoot(root).render(<App />);
