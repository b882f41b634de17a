/** A process that has its place at a database until it is killed. */
import { openPostgres } from '../../src/storage/postgres/storage.ts';

const [url = ''] = process.argv.slice(2);
await openPostgres({ url, connections: 2, lockMode: 'alone' });
process.stdout.write('ready\n');
