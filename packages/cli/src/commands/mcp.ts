/** `meterline mcp`: usage and cost as tools of an AI assistant. */
import type { Command } from 'commander';
import { type CommandContext, say } from '../command.js';
import { withApiFlags } from '../flags.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../settings.js';

const EXAMPLE = `
The assistant starts this command. For example, in the configuration of Claude Desktop or Cursor:
  {"mcpServers": {"meterline": {"command": "meterline", "args": ["mcp", "--account", "acme"]}}}`;

export function addMcp(command: Command, context: CommandContext): void {
  command
    .description(
      'Serves usage and cost to an AI assistant over standard input and output (Model Context Protocol). The tools only read,\n' +
        'and only what the API key may read. Ends when standard input is closed.',
    )
    .addHelpText('after', `${EXAMPLE}\n${API_SETTINGS_HELP}`)
    .action(async (flags: ApiFlags) => {
      const { serveTools } = await import('../mcp/server.js');
      if (context.stdin.isTTY)
        say(context, 'Waiting for the messages of an MCP client; --help shows how to set one up.');
      serveTools({ context, flags }, command.parent?.version() ?? '');
    });
  withApiFlags(command);
}
