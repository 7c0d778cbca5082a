#!/usr/bin/env node
// The executable stays outside dist so that package managers can link it before the first build.
import '../dist/main.js';
