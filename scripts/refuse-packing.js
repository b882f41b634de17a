/**
 * Runs before npm packs or publishes a package of this repository from its sources, and refuses it:
 * Node runs no TypeScript below `node_modules`, so the commands in such a package would not start.
 */
console.error(
  'This folder has sources, which do not run as a package: run `npm run pack` instead.',
);
process.exitCode = 1;
