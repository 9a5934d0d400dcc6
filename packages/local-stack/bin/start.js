#!/usr/bin/env node
import '../dist/start/main.js';
