import './styles/tokens.css';
import './styles/base.css';
import './styles/frame.css';
import './styles/kit.css';
import './styles/table.css';
import './styles/pages.css';
import { render } from 'preact';
import { App } from './app/app.tsx';
import { startRouting } from './app/router.ts';
import { startTheme } from './app/theme.ts';
import { startTicking } from './app/time.ts';

startTheme();
startTicking();
startRouting();
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
