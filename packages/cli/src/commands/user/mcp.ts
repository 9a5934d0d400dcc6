/** The `meterline mcp` command, which offers tools to AI assistants. */
import type { Command } from 'commander';
import { type CommandContext, say } from '../../command.js';
import { withApiFlags } from '../../flags.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../../settings.js';

const EXAMPLE = `
Configure your assistant to start this command. For example, in Claude Desktop or Cursor:
  {"mcpServers": {"meterline": {"command": "meterline", "args": ["mcp", "--account", "acme"]}}}`;

export function addMcp(command: Command, context: CommandContext): void {
  command
    .description(
      'Serve usage and cost to an AI assistant over standard input and output (Model Context Protocol). The tools are read-only ' +
        'and limited to the access rights of the API key. The command exits when standard input is closed.',
    )
    .addHelpText('after', `${EXAMPLE}\n${API_SETTINGS_HELP}`)
    .action(async (flags: ApiFlags) => {
      const { serveTools } = await import('../../mcp/server.js');
      if (context.stdin.isTTY)
        say(context, 'Waiting for messages of an MCP client; use --help for setup instructions.');
      serveTools({ context, flags }, command.parent?.version() ?? '');
    });
  withApiFlags(command);
}
