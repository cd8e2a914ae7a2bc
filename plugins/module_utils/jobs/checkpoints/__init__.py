# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is a checkpoint whole? Told from names, sizes and headers; no tensor is loaded and no pickle is executed.

`survey` looks below a directory, newest checkpoint first; a file per format knows what belongs to one. Plain files
are read, with the standard library alone: the hosts where checkpoints are mounted seldom have torch.
"""
