/** The page's entry. */
import { createRoot } from 'react-dom/client';
import { EmbeddedApp } from './embed/embedded-app.js';
import { isEmbedded } from './embed/embedding.js';
import { App } from './shell/app.js';
import { applyTheme } from './shell/header.js';
import '@fontsource-variable/inter/wght.css';
import './styles/base.css';
import './styles/page.css';
import './styles/controls.css';
import './styles/chart.css';
import './styles/table.css';
import './styles/alerts.css';

applyTheme();

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no #root');
createRoot(root).render(isEmbedded ? <EmbeddedApp /> : <App />);
